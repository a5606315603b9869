"""Where promoted memory is kept beside its record: the session store of the working tier, in process or in Redis."""
