import type { Pod } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { ReportReader } from './report-reader.ts'

const { signal } = new AbortController()
const pod = (uid: string) => ({ metadata: { name: uid, uid }, status: { podIP: '192.0.2.1' } }) as Pod

function reader(body: string) {
  const tags: (string | undefined)[] = []
  const reports = new ReportReader<string>({ path: '/x', maxBytes: 1 << 30, read: (text) => text.slice(0, 1) }, async (_, { tag }) => {
    tags.push(tag)
    return tag === undefined ? { status: 200, tag: '"1"', body } : { status: 304, tag, body: '' }
  })
  return { tags, read: (uid: string) => reports.read(pod(uid), signal) }
}

describe('ReportReader', () => {
  it('asks with the tag of the last answer, and knows what it stands for', async () => {
    const { tags, read } = reader('a report')
    expect([await read('one'), await read('one'), await read('two')]).toEqual(['a', 'a', 'a'])
    expect(tags).toEqual([undefined, '"1"', undefined])
  })

  it('keeps no more than 64 MiB of reports, however many pods come and go', async () => {
    const { tags, read } = reader('x'.repeat(16 << 20))
    for (let index = 0; index < 20; index++) await read(`pod-${index}`)
    tags.length = 0
    for (let index = 19; index >= 0; index--) await read(`pod-${index}`)
    expect(tags.filter((tag) => tag !== undefined)).toHaveLength(4)
  })

  it('keeps nothing of a pod whose report is larger than all of that', async () => {
    const { tags, read } = reader('x'.repeat(65 << 20))
    await read('one')
    await read('one')
    expect(tags).toEqual([undefined, undefined])
  })

  it('has no report of a pod without an address, or whose internal port cannot be reached', async () => {
    const reports = new ReportReader<string>({ path: '/x', maxBytes: 100, read: (text) => text })
    const at = (podIP?: string) => ({ metadata: { name: 'p', uid: 'p' }, status: { ...(podIP && { podIP }) } }) as Pod
    expect(await reports.read(at(), signal)).toBeUndefined()
    // No connection leads there, whatever listens on this machine.
    const broadcast = '255.255.255.255'
    expect(await reports.read(at(broadcast), signal)).toBeUndefined()
    expect(await reports.read(at(broadcast), AbortSignal.abort())).toBeUndefined()
  })
})
