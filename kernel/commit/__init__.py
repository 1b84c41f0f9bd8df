"""What a run may ask for, and what a commit does with it."""
