import type { AggregationConfig } from '@thv/vmcpconfig/vmcp-config'
import { describe, expect, it } from 'vitest'
import { testConfig } from '../testing/test-vmcp.ts'
import { possibleBackends } from './possible-backends.ts'

const BACKENDS = ['chat', 'wiki', 'wiki.docs']
const config = (aggregation: object): AggregationConfig => testConfig({ backends: {}, config: { aggregation } }).aggregation
const prefix = config({ conflictResolution: 'prefix' })
const call = (name: unknown, method = 'tools/call') => ({ method, params: { name } })

describe('backends that may have what a request names', () => {
  it('have the prefix, the longest of those that fit, where all names have one', () => {
    expect(possibleBackends(call('wiki_search'), BACKENDS, prefix)).toEqual(['wiki'])
    expect(possibleBackends(call('wiki_docs_search'), BACKENDS, prefix)).toEqual(['wiki.docs'])
    expect(possibleBackends(call('chat_help', 'prompts/get'), BACKENDS, prefix)).toEqual(['chat'])
    expect(possibleBackends(call('nothing'), BACKENDS, prefix)).toEqual([])
    expect(possibleBackends(call(7), BACKENDS, prefix)).toEqual([])
    expect(possibleBackends(call('x'), [], prefix)).toEqual([])
  })

  it('are all of them where names show nothing', () => {
    expect(possibleBackends(call('wiki_search'), BACKENDS, config({ conflictResolution: 'prefixOnConflict' }))).toEqual(BACKENDS)
    expect(possibleBackends({ method: 'resources/read', params: { uri: 'x://y' } }, BACKENDS, prefix)).toEqual(BACKENDS)
  })
})
