import type { JsonObject } from '../wire/json-rpc.ts'

/** An input schema whose properties are all optional. */
export function inputs(properties: JsonObject = {}, required: string[] = []): JsonObject {
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) }
}

export const STRING = { type: 'string' } as const
export const INTEGER = { type: 'integer' } as const
export const BOOLEAN = { type: 'boolean' } as const

export function numberArg(args: JsonObject, name: string, fallback: number): number {
  const value = args[name]
  return typeof value === 'number' && Number.isFinite(value) ? value : fallback
}

export function stringArg(args: JsonObject, name: string, fallback: string): string {
  const value = args[name]
  return typeof value === 'string' ? value : fallback
}
