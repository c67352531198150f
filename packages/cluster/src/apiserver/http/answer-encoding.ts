import { stringify } from 'yaml'
import { notAcceptable, wantsYaml } from './response-form.ts'

/** The writer of YAML takes a second for some of this, and stops everyone else meanwhile. */
const MAX_YAML_BYTES = 1 << 20

/** An answer in the media type that the client wants. Throws 406 for one that is too large for YAML. */
export function encodeAnswer(text: string, accept: string): { readonly type: string; readonly body: Buffer } {
  if (!wantsYaml(accept)) return { type: 'application/json', body: Buffer.from(text) }
  if (text.length > MAX_YAML_BYTES)
    throw notAcceptable(`the answer is too large for YAML (${MAX_YAML_BYTES} bytes of JSON); ask for application/json`)
  const yaml = stringify(JSON.parse(text), { version: '1.1', sortMapEntries: true, lineWidth: 0, aliasDuplicateObjects: false })
  return { type: 'application/yaml', body: Buffer.from(yaml) }
}
