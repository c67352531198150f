import { PATIENCE_MS } from '@thv/testkit/run/patience'

export interface Visit {
  readonly status: number
  readonly url: URL
  readonly location: URL | undefined
  readonly headers: Headers
  readonly text: string
}

export interface VisitOptions {
  readonly form?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
}

/** A browser with cookies that follows nothing by itself. */
export class Browser {
  readonly cookies = new Map<string, string>()

  async visit(to: URL | string, { form, headers = {} }: VisitOptions = {}): Promise<Visit> {
    const url = new URL(to)
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: { accept: 'text/html', ...(cookie !== '' && { cookie }), ...headers },
      ...(form !== undefined && { method: 'POST', body: new URLSearchParams(form) }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    for (const line of answer.headers.getSetCookie()) this.#keep(line)
    const location = answer.headers.get('location')
    const target = location === null ? undefined : new URL(location, url)
    return { status: answer.status, url, location: target, headers: answer.headers, text: await answer.text() }
  }

  /** Follows redirects until a page, or until an address that begins so. */
  async follow(to: URL | string, until = 'http://127.0.0.1:8765/'): Promise<Visit> {
    let visit = await this.visit(to)
    for (let step = 0; step < 15 && visit.location !== undefined; step++) {
      if (visit.location.href.startsWith(until)) return visit
      visit = await this.visit(visit.location)
    }
    return visit
  }

  /** Sends the form of a page with its hidden fields. */
  async submit(page: Visit, fields: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}): Promise<Visit> {
    const action = /<form[^>]* action="([^"]*)"/.exec(page.text)?.[1]
    const hidden = [...page.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [
      name,
      value,
    ])
    return await this.visit(action === undefined ? page.url : new URL(action, page.url), {
      form: { ...Object.fromEntries(hidden), ...fields },
      headers,
    })
  }

  #keep(line: string): void {
    const [pair = ''] = line.split(';')
    const at = pair.indexOf('=')
    if (pair.slice(at + 1) === '') this.cookies.delete(pair.slice(0, at))
    else this.cookies.set(pair.slice(0, at), pair.slice(at + 1))
  }
}
