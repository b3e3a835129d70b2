// Nothing is compiled here: the chain gets the contracts that `make` compiled.
export default {};
