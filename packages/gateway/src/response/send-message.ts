import type { Exchange } from '@thv/http/server/exchange'
import { type HeaderPairs, sendWholeText } from '@thv/http/server/respond'

export interface JsonAnswer {
  readonly status?: number
  readonly headers?: HeaderPairs
}

/** A JSON-RPC message that is there as text already. */
export function sendMessage(exchange: Exchange, text: string, { status = 200, headers = NONE }: JsonAnswer = {}): void {
  sendWholeText(exchange, status, { type: 'application/json', text, headers: headers.length === 0 ? NO_STORE : [...NO_STORE, ...headers] })
}

const NONE: HeaderPairs = []
const NO_STORE: HeaderPairs = ['Cache-Control', 'no-store']
