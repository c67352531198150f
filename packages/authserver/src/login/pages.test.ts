import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { connectedPage, connectPage, consentPage, errorPage, notConnectedPage, type Page, waitPage } from './pages.ts'

const HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
const shown = { action: '/oauth/login/x', csrf: 'c', formTargets: ['https://app.example.com'] }
const consent = (clientName: string) =>
  consentPage({ ...shown, clientName, recipient: 'a program on this computer', scopes: ['mcp'], providers: ['corp'] })
const connect = (application: string) => connectPage({ ...shown, application, provider: 'tickets' })

/** The text of a page in a browser that knows no styles. */
function textOf({ html }: Page): string {
  const body = /<body>([\s\S]*)<\/body>/.exec(html)?.[1] ?? ''
  return body
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}

const PAGES: readonly (readonly [string, Page, readonly string[]])[] = [
  ['consent', consent('Editor'), ['Editor', 'a program on this computer', 'mcp', 'corp', 'Allow', 'Deny']],
  ['connect', connect('Editor'), ['Connect tickets?', 'Editor', 'Cancel']],
  ['connected', connectedPage('tickets'), ['tickets is connected', 'close this page']],
  ['not connected', notConnectedPage('tickets'), ['tickets is not connected', 'Nothing has changed']],
  ['error', errorPage('The login has ended.'), ['The login has ended.', 'Start again']],
  ['wait', waitPage(3, { isForm: false }), ['too many requests', '3 seconds']],
]

describe.each(PAGES)('the page %s', (_, page, words) => {
  it('is readable without its styles, with one heading and a title', () => {
    for (const word of words) expect(textOf(page)).toContain(word)
    expect(page.html.match(/<h1>/g)).toHaveLength(1)
    expect(page.html).toMatch(/<html lang="en">[\s\S]*<title>[^<]+<\/title>/)
  })

  it('leaves colors to the browser, in light and dark', () => {
    const style = /<style>([^<]*)<\/style>/.exec(page.html)?.[1] ?? ''
    expect(page.html).toContain('<meta name="color-scheme" content="light dark">')
    expect(style).toContain('color-scheme:light dark')
    expect(style.replace('color-scheme', '')).not.toMatch(/color|background|#[0-9a-f]{3}|rgb|hsl/i)
  })

  it('runs no script, loads nothing, and allows its own styles alone', () => {
    expect(page.html).not.toMatch(/<script|<img|<link|<iframe|javascript:|\son\w+=|https?:/i)
    const style = /<style>([^<]*)<\/style>/.exec(page.html)?.[1] ?? ''
    const policy = page.headers['Content-Security-Policy'] ?? ''
    expect(policy).toContain(`default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`)
    expect(policy).toContain("frame-ancestors 'none'")
  })
})

it.each([consent(HOSTILE), connect(HOSTILE), errorPage(HOSTILE), connectedPage(HOSTILE)])(
  'shows a hostile text as text: page %#',
  (page) => {
    expect(page.html).not.toMatch(/<script|<img/)
    expect(page.html).toContain('&#60;script&#62;')
  },
)
