import { isIP } from 'node:net'
import { uriProblem } from '../../text.ts'
import { isConcreteHostname } from '../route/hostname.ts'

const MAX_LENGTH = 2_048

/** The problem of a `registry-url`, or undefined. It is parsed only, never called. Messages do not repeat it. */
export function directUrlProblem(text: string): string | undefined {
  if (text === '') return 'is empty'
  if (text.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  if (url === null) return 'must be an absolute http or https URL'
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/?#]*@/.test(text)) return 'must not carry a user name or password'
  if (text.includes('#')) return 'must not have a fragment'
  if (uriProblem(text) !== undefined || !/^https?:\/\//.test(text))
    return 'must be an ASCII URL without spaces, templates or capitals in its scheme'
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  return isIP(host) !== 0 || isConcreteHostname(host) ? undefined : 'must name one host, without wildcard'
}
