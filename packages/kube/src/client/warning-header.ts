/** The texts of `Warning` headers as the API server sends them: `299 - "text"`, several of them joined by commas (RFC 7234 §5.5). */
export function parseWarnings(header: string | string[] | undefined): string[] {
  if (header === undefined) return []
  const joined = Array.isArray(header) ? header.join(', ') : header
  return [...joined.matchAll(/\b\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map((match) => (match[1] ?? '').replace(/\\(.)/g, '$1'))
}
