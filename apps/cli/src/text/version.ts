/** Of this program, as servers and users are told. */
export const VERSION = '0.1.0'
