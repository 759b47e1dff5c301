"""What holds over windows: the second temporal engine, over the same facts as detect/.

Place:   beside detect/; core/ opens an engine (engine.py) and gives it what was extracted and detected.
Method:  annotated evaluation (Bazoobandi, Beck, Urbani: Laser, 2017): what a window shows is a table of rows,
         each with the last point at which it holds; joins take the least of those. Its literal reading is
         reference/lars.py.
"""
