/** Text of the characters of a JWT. Each is read once: the pattern has one way to match. */
const CANDIDATE = /[\w.-]+/g
const START = 'eyJ'
const MIN_HEADER_CHARS = 8

/**
 * Replaces JWTs, wherever in a text they begin. One pattern for a whole JWT would read a long text without a dot again from every place where
 * it could begin; this takes time proportional to the text.
 */
export function withoutJwts(text: string, replacement: string): string {
  return text.includes(START) ? text.replace(CANDIDATE, (run) => replaced(run, replacement)) : text
}

/** Of two parts that follow each other the first is the header; the signature may be missing, as in `alg: none`. */
function replaced(run: string, replacement: string): string {
  const parts = run.split('.')
  const kept: string[] = []
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] ?? ''
    const start = parts[i + 1] ? headerStart(part) : -1
    if (start === -1) {
      kept.push(part)
      continue
    }
    kept.push(`${part.slice(0, start)}${replacement}`)
    i += 2 // payload and signature
  }
  return kept.join('.')
}

/** Of a header that begins where a word does: `x-eyJ…`, not `keyJ…`. */
function headerStart(part: string): number {
  for (let at = part.indexOf(START); at !== -1; at = part.indexOf(START, at + 1)) {
    if (part.length - at < MIN_HEADER_CHARS) return -1
    if (at === 0 || part[at - 1] === '-') return at
  }
  return -1
}
