

xPlaceholder*
dtype0"