import { systemClock } from '@thv/kernel/clock'
import { PATIENCE_MS } from '../run/patience.ts'

const MAX_STEPS = 60
/** Of all steps of one login together: a quick machine sends more requests than an address may. */
const MAX_REFUSALS = 20

export interface SignInOptions {
  readonly user: string
  /** Where the client waits for the user to come back. It is not called. */
  readonly redirectUri: string
  /** Cookies of a browser that is used more than once. */
  readonly cookies?: Map<string, string>
  /** Sends one request. A browser whose user tries again brings its own. */
  readonly fetch?: (url: URL, init: RequestInit) => Promise<Response>
}

const fetchInTime: NonNullable<SignInOptions['fetch']> = (url, init) => fetch(url, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) })

/**
 * Does what a browser and its user would: follows redirects with cookies, fills in the login page, and comes again when the server says that there
 * are too many requests. Returns the address it ends at.
 */
export async function signIn(authorizationUrl: string | URL, { redirectUri, ...options }: SignInOptions): Promise<URL> {
  const ended = await browse(authorizationUrl, { ...options, isOver: (url) => url.href.startsWith(redirectUri) })
  if (ended.url.href.startsWith(redirectUri)) return ended.url
  throw new Error(`the login stopped at ${ended.url.pathname} with ${ended.status}: ${ended.text.slice(0, 500)}`)
}

export interface BrowsedPage {
  readonly url: URL
  readonly status: number
  readonly text: string
}

/** Opens a link and fills in whatever forms follow. Returns the page where nothing is left to fill in. */
export async function openLink(link: string | URL, options: Omit<SignInOptions, 'redirectUri'>): Promise<BrowsedPage> {
  return await browse(link, { ...options, isOver: () => false })
}

interface BrowseOptions extends Omit<SignInOptions, 'redirectUri'> {
  /** The browser does not go there. */
  isOver(url: URL): boolean
}

async function browse(start: string | URL, options: BrowseOptions): Promise<BrowsedPage> {
  const { user, cookies = new Map<string, string>(), fetch: send = fetchInTime, isOver } = options
  let url = new URL(start)
  let form: URLSearchParams | undefined
  let refusals = 0
  for (let step = 0; step < MAX_STEPS; step++) {
    const answer = await send(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form !== undefined && { method: 'POST', body: form }),
    })
    const wait = Number(answer.headers.get('retry-after'))
    if (answer.status === 429 && wait > 0 && refusals++ < MAX_REFUSALS) {
      await answer.body?.cancel()
      await systemClock.sleep(wait * 1_000)
      continue
    }
    for (const line of answer.headers.getSetCookie()) keep(cookies, line)
    const text = await answer.text()
    const location = answer.headers.get('location')
    if (location !== null) {
      url = new URL(location, url)
      form = undefined
      if (isOver(url)) return { url, status: answer.status, text }
    } else if (answer.status === 200 && form === undefined && text.includes('<form')) {
      form = filledIn(text, user)
      url = new URL(/<form[^>]* action="([^"]*)"/.exec(text)?.[1] ?? url, url)
    } else return { url, status: answer.status, text }
  }
  throw new Error(`the login took more than ${MAX_STEPS} steps`)
}

/** The form of a user who allows everything. */
function filledIn(page: string, user: string): URLSearchParams {
  const hidden = [...page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ])
  return new URLSearchParams([...hidden, ['user', user], ['decision', 'allow']])
}

function keep(cookies: Map<string, string>, line: string): void {
  const [pair = ''] = line.split(';')
  const at = pair.indexOf('=')
  const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
  if (value === '') cookies.delete(name)
  else cookies.set(name, value)
}
