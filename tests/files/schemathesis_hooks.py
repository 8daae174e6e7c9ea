"""How raw bodies are made: valid ones, as no schema can describe them."""

import numpy as np
import schemathesis
from hypothesis import strategies as st

from streamhash.service.frames import TYPE, pack_frame


@st.composite
def frames(draw):
    n = draw(st.integers(1, 3))
    values = draw(st.lists(st.floats(-100, 100, width=32), min_size=3 * n, max_size=3 * n))
    return pack_frame({"shape": [n, 3]}, np.array(values, np.float32))


schemathesis.openapi.media_type(TYPE, frames())
