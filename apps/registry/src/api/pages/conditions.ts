/** RFC 9110 §13.1.2: weak comparison, `*` for anything. */
export function matchesTag(condition: string | string[], tag: string): boolean {
  if (condition === tag) return true
  const opaque = tag.replace(/^W\//, '')
  const text = typeof condition === 'string' ? condition : condition.join(',')
  if (text.trim() === '*') return true
  for (const candidate of text.split(',')) if (candidate.trim().replace(/^W\//, '') === opaque) return true
  return false
}

const accepted = new Map<string, boolean>()
const MAX_REMEMBERED = 64

/** RFC 9110 §12.5.3. Clients repeat one of a few texts, so the answers are remembered. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  if (header === undefined) return false
  const text = typeof header === 'string' ? header : header.join(',')
  let answer = accepted.get(text)
  if (answer === undefined) {
    answer = readAcceptEncoding(text)
    if (accepted.size >= MAX_REMEMBERED) accepted.clear()
    accepted.set(text, answer)
  }
  return answer
}

function readAcceptEncoding(text: string): boolean {
  let wildcard = false
  for (const item of text.split(',')) {
    const [coding = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
    if (coding !== 'gzip' && coding !== 'x-gzip' && coding !== '*') continue
    const refused = parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter))
    if (coding !== '*') return !refused
    wildcard = !refused
  }
  return wildcard
}
