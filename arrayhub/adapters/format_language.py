def parse_format(f,i): raise NotImplementedError
def write_format(d,a=True): raise NotImplementedError
