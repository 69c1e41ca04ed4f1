"""Operations over named axes and devices."""
