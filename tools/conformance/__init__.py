"""The list of the specifications' demands: the code for each demand, and its tests."""
