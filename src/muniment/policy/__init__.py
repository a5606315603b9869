"""Pure decisions: no clock, no database, no chance. `now` comes in as an argument, reasons come out."""
