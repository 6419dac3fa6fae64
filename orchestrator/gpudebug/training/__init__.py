"""What runs inside the user's training process: standard library only, from Python 3.8 on."""
