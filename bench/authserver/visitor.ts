import { createHash, randomBytes } from 'node:crypto'
import { request } from 'undici'

/** A server whose users log in, as a client of it sees it. */
export interface LoginTarget {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly clientId: string
  readonly scope: string
  /** Undefined: tokens are for the server itself. */
  readonly resource: string | undefined
}

export interface Tokens {
  readonly accessToken: string
  readonly refreshToken: string
}

export const REDIRECT_URI = 'http://127.0.0.1:8765/callback'
const MAX_STEPS = 30

/** A new browser goes through a whole login, and the client redeems the code. */
export async function logIn(target: LoginTarget, user: string): Promise<Tokens> {
  const verifier = randomBytes(32).toString('base64url')
  const url = new URL(target.authorizationEndpoint)
  const query = {
    ...{ response_type: 'code', client_id: target.clientId, redirect_uri: REDIRECT_URI, scope: target.scope, state: 'x' },
    ...{ code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256' },
    ...(target.resource === undefined ? { prompt: 'consent' } : { resource: target.resource }),
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const landed = await browse(url, user)
  const code = landed.searchParams.get('code')
  if (code === null) throw new Error(`the login ended at ${landed.href}`)
  return await token(target, { grant_type: 'authorization_code', code, redirect_uri: REDIRECT_URI, code_verifier: verifier })
}

export async function refresh(target: LoginTarget, { refreshToken }: Tokens): Promise<Tokens> {
  return await token(target, { grant_type: 'refresh_token', refresh_token: refreshToken })
}

async function token({ tokenEndpoint, clientId }: LoginTarget, form: Readonly<Record<string, string>>): Promise<Tokens> {
  const body = new URLSearchParams({ ...form, client_id: clientId }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded', ...someAddress() }
  const answer = await request(tokenEndpoint, { method: 'POST', headers, body })
  const text = await answer.body.text()
  if (answer.statusCode !== 200) throw new Error(`a token request was answered with ${answer.statusCode}: ${text.slice(0, 300)}`)
  const { access_token: accessToken, refresh_token: refreshToken } = JSON.parse(text) as Record<string, string>
  if (accessToken === undefined || refreshToken === undefined) throw new Error('an answer lacks a token')
  return { accessToken, refreshToken }
}

/** Follows redirects with cookies and fills in forms, up to the redirect to the client. */
async function browse(start: URL, user: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let url = start
  let form: string | undefined
  for (let step = 0; step < MAX_STEPS; step++) {
    const cookie = [...(cookies.entries() ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')
    const type = form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await request(url, {
      method: form === undefined ? 'GET' : 'POST',
      headers: { accept: 'text/html', cookie, ...type, ...someAddress() },
      ...(form !== undefined && { body: form }),
    })
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) keep(cookies, line)
    const text = await answer.body.text()
    const { location } = answer.headers
    if (typeof location === 'string') {
      url = new URL(location, url)
      form = undefined
      if (url.href.startsWith(REDIRECT_URI)) return url
    } else if (answer.statusCode === 200) {
      form = filledIn(text, user)
      url = new URL(/<form[^>]* action="([^"]*)"/.exec(text)?.[1] ?? url, url)
    } else throw new Error(`a login stopped at ${url.pathname} with ${answer.statusCode}: ${text.slice(0, 300)}`)
  }
  throw new Error(`a login took more than ${MAX_STEPS} steps`)
}

/** Of a user who allows everything, on the pages of the server, of its provider and of the library. */
function filledIn(page: string, user: string): string {
  const hidden = [...page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ])
  const typed = { user, login: user, password: 'x', decision: 'allow' }
  return new URLSearchParams([...hidden, ...Object.entries(typed)]).toString()
}

function keep(cookies: Map<string, string>, line: string): void {
  const [pair = ''] = line.split(';')
  const at = pair.indexOf('=')
  const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
  if (value === '') cookies.delete(name)
  else cookies.set(name, value)
}

let visitors = 0

/** Limits count for each address. */
function someAddress(): { 'x-forwarded-for': string } {
  const n = ++visitors
  return { 'x-forwarded-for': `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}` }
}
