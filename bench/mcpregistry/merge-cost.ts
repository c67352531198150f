import { readDocument } from '@thv/catalog/merge/read-document'
import { ShardedMerge } from '@thv/catalog/shards/sharded-merge'
import { registryText } from './data-maps.ts'

const ROUNDS = 200
const RULES = { format: 'toolhive', strategy: 'prefix' } as const

/** Reading and merging one changed ConfigMap of many, beside parsing it and writing its shard as JSON. Medians, in ms, each in turn with the other. */
export function mergeCost(maps: number): { merge: number; bare: number } {
  const contributions = Array.from({ length: maps }, (_, index) => contributionOf(index, registryText(index)))
  const standing = new ShardedMerge()
  standing.merge(contributions, RULES)
  const merges: number[] = []
  const bares: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const index = round % maps
    const text = registryText(index, `changed in round ${round}`)
    const started = performance.now()
    contributions[index] = contributionOf(index, text)
    const outcome = standing.merge(contributions, RULES)
    merges.push(performance.now() - started)
    if (outcome.kind === 'conflict' || !outcome.sharding.ok) throw new Error('the merge was refused')
    const shard: unknown = JSON.parse(outcome.sharding.texts.find((each) => each?.includes(`changed in round ${round}"`)) ?? '')
    const before = performance.now()
    JSON.parse(text)
    JSON.stringify(shard)
    bares.push(performance.now() - before)
  }
  return { merge: median(merges), bare: median(bares) }
}

function contributionOf(index: number, text: string) {
  const reading = readDocument(text, 'toolhive')
  if (!reading.ok) throw new Error(reading.problem)
  return { name: `team-${index}`, priority: 0, document: reading.document }
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? 0
}
