def grow(state, new):
    raise NotImplementedError
