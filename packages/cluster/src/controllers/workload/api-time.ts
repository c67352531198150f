/** RFC 3339 without fractions, as the server writes times. */
export function apiTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
