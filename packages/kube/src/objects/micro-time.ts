/** RFC 3339 with exactly six digits of a second: what the server's MicroTime fields take, and nothing else. */
export function microTime(epochMs: number, micros = 0): string {
  return `${new Date(epochMs).toISOString().slice(0, -1)}${String(micros).padStart(3, '0')}Z`
}
