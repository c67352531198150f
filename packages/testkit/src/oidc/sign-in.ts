const MAX_STEPS = 60

export interface SignInOptions {
  readonly user: string
  /** Where the client waits for the user to come back. It is not called. */
  readonly redirectUri: string
  /** Cookies of a browser that is used more than once. */
  readonly cookies?: Map<string, string>
}

/** Does what a browser and its user would: follows redirects with cookies and fills in the login page. Returns the address it ends at. */
export async function signIn(authorizationUrl: string | URL, { user, redirectUri, cookies = new Map() }: SignInOptions): Promise<URL> {
  let url = new URL(authorizationUrl)
  let form: URLSearchParams | undefined
  for (let step = 0; step < MAX_STEPS; step++) {
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form !== undefined && { method: 'POST', body: form }),
      signal: AbortSignal.timeout(10_000),
    })
    for (const line of answer.headers.getSetCookie()) keep(cookies, line)
    const text = await answer.text()
    const location = answer.headers.get('location')
    if (location !== null) {
      url = new URL(location, url)
      form = undefined
      if (url.href.startsWith(redirectUri)) return url
    } else if (answer.status === 200 && form === undefined) {
      form = filledIn(text, user)
      url = new URL(/<form[^>]* action="([^"]*)"/.exec(text)?.[1] ?? url, url)
    } else throw new Error(`the login stopped at ${url.pathname} with ${answer.status}: ${text.slice(0, 500)}`)
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
