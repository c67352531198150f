import type { HeaderMap } from '@thv/http/header-map'
import { OutboundError } from '@thv/http/outbound/outbound-error'

const ANSWERED = { sent: true, answered: true }

/** Whether the body of the answer is compressed or encoded otherwise, although every request asks for `identity`. */
export function isEncoded(headers: HeaderMap): boolean {
  const encoding = headers['content-encoding']
  return encoding !== undefined && String(encoding).toLowerCase() !== 'identity'
}

/** An encoded answer cannot be checked or edited, and the client did not ask for it either. Becomes 502. */
export function encodedAnswer(): OutboundError {
  return new OutboundError('backend_protocol', 'the backend sent a Content-Encoding that it was asked not to use', ANSWERED)
}
