import { isUtf8 } from 'node:buffer'

/** The parts of a ConfigMap that hold data. */
export interface ConfigMapData {
  readonly data?: Readonly<Record<string, string>> | undefined
  /** Base64. */
  readonly binaryData?: Readonly<Record<string, string>> | undefined
}

export type ConfigMapText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string }

/** The registry file that a ConfigMap holds under a key. */
export function configMapText({ data, binaryData }: ConfigMapData, key: string): ConfigMapText {
  const text = own(data, key)
  if (text !== undefined) return text === '' ? { ok: false, problem: `key ${key} is empty` } : { ok: true, text }
  const encoded = own(binaryData, key)
  if (encoded === undefined) return { ok: false, problem: `has no key ${key}` }
  const bytes = Buffer.from(encoded, 'base64')
  return isUtf8(bytes) ? { ok: true, text: bytes.toString('utf8') } : { ok: false, problem: `key ${key} is not UTF-8 text` }
}

function own(values: Readonly<Record<string, string>> | undefined, key: string): string | undefined {
  return values !== undefined && Object.hasOwn(values, key) ? values[key] : undefined
}
