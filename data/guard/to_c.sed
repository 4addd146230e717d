# A text as a C string, to be included: `sed -f to_c.sed FILE`
1i\
/* Made by the build. */
s/[\\"]/\\&/g
s/^/"/
s/$/\\n"/
