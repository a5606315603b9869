"""The person themselves: what end users see, confirm, correct, have forgotten, consent to and take along."""
