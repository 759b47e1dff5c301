"""Programs that look for what kills dotr; started by hand and, for a minute, by CI."""
