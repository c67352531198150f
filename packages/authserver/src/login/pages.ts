import { createHash } from 'node:crypto'

/** A whole page with the headers that protect it. */
export interface Page {
  readonly html: string
  readonly headers: Readonly<Record<string, string>>
}

const STYLE = [
  ':root{color-scheme:light dark}',
  'body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}',
  'h1{font-size:1.4rem}dt{font-weight:600;margin-top:.75rem}dd{margin:0;overflow-wrap:anywhere}',
  'form{margin-top:1.5rem;display:flex;gap:.75rem}button{font:inherit;padding:.5rem 1.25rem;cursor:pointer}',
  'table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4rem .75rem .4rem 0;overflow-wrap:anywhere}td form{margin:0}h2{font-size:1.1rem;margin-top:2rem}',
].join('')
const STYLE_HASH = `sha256-${createHash('sha256').update(STYLE).digest('base64')}`

export interface ConsentView {
  readonly clientName: string | undefined
  /** The program or site that gets the code, in words. */
  readonly recipient: string
  readonly scopes: readonly string[]
  readonly providers: readonly string[]
  /** Path that the form is sent to. */
  readonly action: string
  readonly csrf: string
  /** Origins that the form may lead to. */
  readonly formTargets: readonly string[]
}

/** Asks the user before anything is sent to a provider: any client may register, and all of them share our client there. */
export function consentPage(view: ConsentView): Page {
  const rows: [string, readonly string[]][] = [
    ['Application', [view.clientName ?? 'An application without a name']],
    ['Sends the login to', [view.recipient]],
    ['Access', view.scopes],
    ['Log in with', view.providers],
  ]
  const list = rows.map(
    ([term, values]) => `<dt>${escapeHtml(term)}</dt>${values.map((value) => `<dd>${escapeHtml(value)}</dd>`).join('')}`,
  )
  const body = [
    '<h1>Allow this application to use this server?</h1>',
    '<p>The application chose its name itself. Continue only if you have just started it.</p>',
    `<dl>${list.join('')}</dl>`,
    `<form method="post" action="${escapeHtml(view.action)}">`,
    `<input type="hidden" name="csrf" value="${escapeHtml(view.csrf)}">`,
    '<button name="decision" value="allow">Allow</button>',
    '<button name="decision" value="deny">Deny</button>',
    '</form>',
  ]
  return page('Allow access', body.join('\n'), ["'self'", ...view.formTargets])
}

/** Says what went wrong and what to do; the text is ours or the library's, never a provider's. */
export function errorPage(text: string): Page {
  return page(
    'Login failed',
    `<h1>The login could not be completed</h1>\n<p>${escapeHtml(text)}</p>\n<p>Start again from your application.</p>`,
    ["'none'"],
  )
}

/** For a browser that came too often, or shares its address with others who did. `isForm`: what it sent must not be sent again by itself. */
export function waitPage(seconds: number, { isForm }: { readonly isForm: boolean }): Page {
  const time = seconds === 1 ? '1 second' : `${seconds} seconds`
  const advice = isForm
    ? `Nothing has changed. Go back and try again in ${time}.`
    : `This page tries again in ${time}. If it does not, load it again.`
  const body = `<h1>Please wait a moment</h1>\n<p>The server gets too many requests from your network.</p>\n<p>${advice}</p>`
  return page('Please wait', body, ["'none'"], isForm ? '' : `<meta http-equiv="refresh" content="${seconds}">\n`)
}

export interface ConnectView {
  /** The application whose session gets to use the provider. */
  readonly application: string
  readonly provider: string
  readonly action: string
  readonly csrf: string
  readonly formTargets: readonly string[]
}

/** Asks the user before a provider is connected: it may remember the user, and ask nothing. */
export function connectPage({ application, provider, action, csrf, formTargets }: ConnectView): Page {
  const body = [
    `<h1>Connect ${escapeHtml(provider)}?</h1>`,
    '<p>A call of this application needs your account there. Continue only if you have just used the application.</p>',
    `<dl><dt>Application</dt><dd>${escapeHtml(application)}</dd><dt>Log in with</dt><dd>${escapeHtml(provider)}</dd></dl>`,
    `<form method="post" action="${escapeHtml(action)}">`,
    `<input type="hidden" name="csrf" value="${escapeHtml(csrf)}">`,
    '<button name="decision" value="allow">Connect</button>',
    '<button name="decision" value="deny">Cancel</button>',
    '</form>',
  ]
  return page(`Connect ${provider}`, body.join('\n'), ["'self'", ...formTargets])
}

export function connectedPage(provider: string): Page {
  const body = `<h1>${escapeHtml(provider)} is connected</h1>\n<p>Go back to your application. You can close this page.</p>`
  return page('Connected', body, ["'none'"])
}

export function notConnectedPage(provider: string): Page {
  const body = `<h1>${escapeHtml(provider)} is not connected</h1>\n<p>Nothing has changed. You can close this page.</p>`
  return page('Not connected', body, ["'none'"])
}

export function page(title: string, body: string, formTargets: readonly string[], head = ''): Page {
  const html = `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<meta name="color-scheme" content="light dark">\n${head}<title>${escapeHtml(title)}</title>\n<style>${STYLE}</style>\n</head>\n<body>\n${body}\n</body>\n</html>\n`
  const policy = [
    "default-src 'none'",
    `style-src '${STYLE_HASH}'`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
    `form-action ${formTargets.join(' ')}`,
  ].join('; ')
  return {
    html,
    headers: {
      'Content-Security-Policy': policy,
      'X-Frame-Options': 'DENY',
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'no-store',
    },
  }
}

export function escapeHtml(text: string): string {
  return text
    .replace(/[&<>"'\u202a-\u202e\u2066-\u2069]/g, (char) => `&#${char.codePointAt(0)};`)
    .replace(/&#(?:82(?:3[4-8])|829[4-7]);/g, '')
}
