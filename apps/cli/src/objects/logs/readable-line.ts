import { isObject, type UnknownObject } from '@thv/kernel/json'
import { plainText, shortened } from '../../text/plain-text.ts'
import { rpcLine } from './rpc-line.ts'

/**
 * A line of a pod's log as people read it: JSON-RPC messages of a stdio server without their content, JSON logs as text, everything else
 * as it is, but unable to steer the terminal. Pure.
 */
export function readableLine(line: string): string {
  const value = parsed(line)
  if (Array.isArray(value) && value.length > 0 && value.every(isRpc)) return value.map(rpcLine).join(', ')
  if (isRpc(value)) return rpcLine(value)
  if (isObject(value)) return logLine(value) ?? printable(line)
  // A truncated message is not readable JSON and is not shown raw in a terminal.
  if (/^\s*[[{]/.test(line) && line.endsWith('…')) return `(a message of more than ${line.length >> 20} MiB)`
  return printable(line)
}

/** Names that loggers use for the parts of a line. */
const TIME = ['time', 'ts', 'timestamp', '@timestamp', 'asctime']
const LEVEL = ['level', 'severity', 'lvl', 'levelname']
const MESSAGE = ['msg', 'message', 'event']
/** Of pino and bunyan. */
const LEVELS: Readonly<Record<number, string>> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' }

function logLine(entry: UnknownObject): string | undefined {
  const message = MESSAGE.map((name) => entry[name]).find((value) => typeof value === 'string')
  if (message === undefined) return undefined
  const level = LEVEL.map((name) => entry[name]).find((value) => typeof value === 'string' || typeof value === 'number')
  const named = typeof level === 'number' ? (LEVELS[level] ?? String(level)) : (level ?? '')
  const known = new Set([...TIME, ...LEVEL, ...MESSAGE])
  const fields = Object.entries(entry).flatMap(([name, value]) => (known.has(name) ? [] : [`${plainText(name)}=${fieldText(value)}`]))
  return [plainText(named).toUpperCase().padEnd(5), plainText(message), ...fields].join(' ').trim()
}

const MAX_FIELD = 200

function fieldText(value: unknown): string {
  const text = typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
  return shortened(plainText(text), MAX_FIELD)
}

function isRpc(value: unknown): value is UnknownObject {
  return isObject(value) && value['jsonrpc'] === '2.0'
}

function parsed(line: string): unknown {
  if (!/^\s*[[{]/.test(line)) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined // a text that only begins like JSON
  }
}

/** Tabs stay: traces and tables use them. */
function printable(line: string): string {
  return line.replace(/\p{Cc}\[[0-9;]*m/gu, '').replace(/[^\P{Cc}\t]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, '')
}
