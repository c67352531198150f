/** In which forms a client takes the answer to a POST. */
export interface AcceptedForms {
  readonly json: boolean
  readonly sse: boolean
}

const BOTH: AcceptedForms = { json: true, sse: true }
const JSON_ONLY: AcceptedForms = { json: true, sse: false }
const SSE_ONLY: AcceptedForms = { json: false, sse: true }

/** Without a header, or with one that names neither, the answer is JSON: everybody can read it. */
export function acceptedForms(header: string | readonly string[] | undefined): AcceptedForms {
  if (header === 'application/json, text/event-stream') return BOTH
  const text = typeof header === 'string' ? header : (header?.join(',') ?? '')
  let json = false
  let sse = false
  for (const range of text.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    if (parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) continue
    json ||= type === 'application/json' || type === 'application/*' || type === '*/*'
    sse ||= type === 'text/event-stream' || type === 'text/*' || type === '*/*'
  }
  if (sse) return json ? BOTH : SSE_ONLY
  return JSON_ONLY
}
