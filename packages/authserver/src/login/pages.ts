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

export interface AccountView {
  readonly consents: readonly { readonly id: string; readonly client: string; readonly until: string }[]
  readonly action: string
  readonly csrf: string
}

/** The consents of this browser, each with a button that withdraws it. */
export function accountPage({ consents, action, csrf }: AccountView): Page {
  const rows = consents.map(
    ({ id, client, until }) =>
      `<dt>${escapeHtml(client)}</dt><dd>until ${escapeHtml(until)}<form method="post" action="${escapeHtml(action)}"><input type="hidden" name="csrf" value="${escapeHtml(csrf)}"><button name="withdraw" value="${escapeHtml(id)}">Withdraw</button></form></dd>`,
  )
  const list = rows.length === 0 ? '<p>No application is allowed in this browser.</p>' : `<dl>${rows.join('')}</dl>`
  return page('Allowed applications', `<h1>Applications that you allowed in this browser</h1>\n${list}`, ["'self'"])
}

function page(title: string, body: string, formTargets: readonly string[]): Page {
  const html = `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<meta name="color-scheme" content="light dark">\n<title>${escapeHtml(title)}</title>\n<style>${STYLE}</style>\n</head>\n<body>\n${body}\n</body>\n</html>\n`
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
