/** Version of this program, as servers and users see it. */
export const VERSION = '0.1.0'
