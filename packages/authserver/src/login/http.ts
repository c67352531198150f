import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Page } from './pages.ts'

export interface Http {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export function sendPage(response: ServerResponse, status: number, { html, headers }: Page): void {
  response
    .writeHead(status, { ...headers, 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': Buffer.byteLength(html) })
    .end(html)
}

export function redirect(response: ServerResponse, location: string): void {
  response
    .writeHead(303, { Location: location, 'Content-Length': '0', 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' })
    .end()
}
