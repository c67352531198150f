import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'
import { sendBytes } from '@thv/http/server/respond'

export interface BrowserPageOptions {
  /** Paths of the MCP endpoints, the best one first. */
  readonly paths: readonly string[]
  /** Whether clients must send a token. */
  readonly authenticated: boolean
}

/** Known only where the client is on this machine: elsewhere a gateway may change scheme, host and path. */
export interface LocalServer {
  readonly name: string
  /** Scheme, host and port. */
  readonly origin: string
}

/** A person with a browser asks: never a client of MCP, which asks for an event stream or sends anything but GET. */
export function wantsBrowserPage({ path, method, headers }: Exchange): boolean {
  if (path !== '/' || (method !== 'GET' && method !== 'HEAD')) return false
  const accept = headerText(headers['accept'])?.toLowerCase()
  return accept !== undefined && accepts(accept, 'text/html') && !accepts(accept, 'text/event-stream')
}

/** Open to everyone, so it says nothing about the server's tools, resources or prompts. */
export function sendBrowserPage(exchange: Exchange, options: BrowserPageOptions, local: LocalServer | undefined): void {
  const body = Buffer.from(pageText(options, local))
  sendBytes(exchange, 200, { type: 'text/html; charset=utf-8', body, headers: HEADERS })
}

const HEADERS = [
  ...['Cache-Control', 'no-store', 'Vary', 'Accept, Host', 'X-Content-Type-Options', 'nosniff', 'Referrer-Policy', 'no-referrer'],
  ...['Content-Security-Policy', "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"],
]

function pageText({ paths, authenticated }: BrowserPageOptions, local: LocalServer | undefined): string {
  const [first = '/mcp'] = paths
  const addresses = paths.map((path) =>
    local === undefined
      ? `the address of this page with <code>${path}</code> at its end`
      : `<code>${escapeHtml(local.origin + path)}</code>`,
  )
  const config = local && JSON.stringify({ mcpServers: { [local.name]: { url: local.origin + first } } }, null, 2)
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>MCP server</title></head>',
    '<body>',
    `<h1>${local === undefined ? 'MCP server' : `MCP server ${escapeHtml(local.name)}`}</h1>`,
    '<p>A ToolHive proxy answers here. It serves clients of the Model Context Protocol, such as editors and assistants, not browsers.</p>',
    '<h2>Connect</h2>',
    `<p>Give your client this URL: ${addresses.join(', or ')}.</p>`,
    ...(authenticated ? ['<p>The client must sign in; most clients find out how by themselves.</p>'] : []),
    ...(config === undefined ? [] : ['<p>Many clients take it from a file:</p>', `<pre>${escapeHtml(config)}</pre>`]),
    ...(local === undefined ? [] : ['<p>In a terminal:</p>', `<pre>${escapeHtml(`thv tools ${local.origin}${first}`)}</pre>`]),
    '</body>',
    '</html>',
    '',
  ].join('\n')
}

/** Named by itself, not by a wildcard, and not excluded by a weight of 0. */
function accepts(header: string, type: string): boolean {
  return header.split(',').some((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim())
    return name === type && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
