import { escapeHtml, type Page, page } from './pages.ts'

export interface AccountView {
  /** Undefined: the user has not logged in with this browser. */
  readonly user:
    | {
        readonly label: string
        readonly providers: readonly string[]
        readonly sessions: readonly {
          readonly id: string
          readonly client: string
          readonly since: string
          readonly providers: readonly string[]
        }[]
        /** How many more there are. */
        readonly olderSessions: number
      }
    | undefined
  readonly consents: readonly { readonly id: string; readonly client: string; readonly until: string }[]
  readonly action: string
  readonly csrf: string
  /** Origins that the form may lead to, besides this one. */
  readonly formTargets: readonly string[]
}

/** Connected providers, sessions and the consents of this browser, each with a button that ends it. */
export function accountPage(view: AccountView): Page {
  const { user, consents } = view
  const body = [
    '<h1>Your account</h1>',
    ...(user === undefined
      ? ['<p>Log in to see the connected providers and your sessions.</p>', button(view, { name: 'login', value: '1', text: 'Log in' })]
      : ofUser(user, view)),
    '<h2>Applications that you allowed in this browser</h2>',
    table(
      view,
      consents.map(({ id, client, until }) => ({ cells: [client, `until ${until}`], name: 'withdraw', value: id, text: 'Withdraw' })),
      'No application is allowed in this browser.',
    ),
  ]
  return page('Your account', body.join('\n'), ["'self'", ...view.formTargets])
}

function ofUser({ label, providers, sessions, olderSessions }: NonNullable<AccountView['user']>, view: AccountView): string[] {
  return [
    `<p>Logged in as ${escapeHtml(label)}</p>`,
    button(view, { name: 'logout', value: '1', text: 'Log out of this page' }),
    '<h2>Connected providers</h2>',
    table(
      view,
      providers.map((provider) => ({ cells: [provider], name: 'disconnect', value: provider, text: 'Disconnect' })),
      'No provider is connected.',
    ),
    '<h2>Sessions</h2>',
    table(
      view,
      sessions.map(({ id, client, since, providers: used }) => ({
        cells: [client, `since ${since}`, used.join(', ')],
        ...{ name: 'end', value: id, text: 'End' },
      })),
      'No application is logged in.',
    ),
    ...(olderSessions > 0 ? [`<p>${olderSessions} older sessions are not listed.</p>`] : []),
    ...(sessions.length > 1 ? [button(view, { name: 'end-all', value: '1', text: 'End all sessions' })] : []),
  ]
}

interface Action {
  readonly name: string
  readonly value: string
  readonly text: string
}

function table(view: AccountView, rows: readonly (Action & { readonly cells: readonly string[] })[], nothing: string): string {
  if (rows.length === 0) return `<p>${escapeHtml(nothing)}</p>`
  const lines = rows.map(({ cells, ...action }) => {
    const [first = '', ...others] = cells.map(escapeHtml)
    return `<tr><th scope="row">${first}</th>${others.map((cell) => `<td>${cell}</td>`).join('')}<td>${button(view, action)}</td></tr>`
  })
  return `<table>${lines.join('')}</table>`
}

function button({ action, csrf }: AccountView, { name, value, text }: Action): string {
  return `<form method="post" action="${escapeHtml(action)}"><input type="hidden" name="csrf" value="${escapeHtml(csrf)}"><button name="${name}" value="${escapeHtml(value)}">${escapeHtml(text)}</button></form>`
}
