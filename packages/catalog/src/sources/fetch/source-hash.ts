import { createHash } from 'node:crypto'
import { toolhiveConverterVersion } from '../../convert-toolhive.ts'
import { filterIdentity } from '../../filters.ts'
import { CONVERTER_VERSION } from './registry-handler.ts'
import { type SourceConfig, sourceTypeOf } from './source-config.ts'

/** Another whenever the data, or what is made of the same data, are other. The pieces count one by one: ['ab'] is not ['a', 'b']. */
export function sourceHash(source: SourceConfig, data: Iterable<Uint8Array | string>): string {
  const hash = createHash('sha256').update(treatment(source))
  for (const piece of data) {
    hash.update(`\n${typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length}\n`)
    hash.update(piece)
  }
  return hash.digest('hex')
}

/** Another whenever what an earlier fetch left behind must not be used: another place, another filter, another release. */
export function stateIdentity(source: SourceConfig): string {
  const place = JSON.stringify(source[sourceTypeOf(source)])
  return createHash('sha256').update(treatment(source)).update('\n').update(place).digest('hex')
}

function treatment(source: SourceConfig): string {
  const { format = 'auto', strict = false, filter = {} } = source
  return JSON.stringify([CONVERTER_VERSION, toolhiveConverterVersion, format, strict, filterIdentity(filter)])
}
