"""The console of `dotr serve`, in a real browser."""
