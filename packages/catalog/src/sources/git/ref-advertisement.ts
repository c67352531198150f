import { failed, overLimit, serverWords } from './git-error.ts'
import type { GitHttp } from './git-http.ts'
import { OID } from './git-objects.ts'
import { createPacketReader, lineOf, type Packet } from './pkt-line.ts'
import type { RefWish } from './ref-wish.ts'

/** How a server begins. Of version 0 and 1 this has all refs already, of which only the wanted one is kept. */
export interface Advertisement {
  readonly version: 0 | 2
  /** Without a value: ''. */
  readonly capabilities: ReadonlyMap<string, string>
  readonly found: string | undefined
  /** The wanted commit is what some ref leads to. */
  readonly isTip: boolean
}

const MAX_BYTES = 64 * 1024 * 1024
const MAX_CAPABILITIES = 1_000

export async function readAdvertisement(http: GitHttp, wish: RefWish): Promise<Advertisement> {
  const capabilities = new Map<string, string>()
  let version: 0 | 2 | undefined
  let found: string | undefined
  let isTip = false
  let bytes = 0

  function addCapability(text: string): void {
    if (text === '' || capabilities.size >= MAX_CAPABILITIES) return
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(text) ?? []
    capabilities.set(name, value)
  }
  function addRef(line: string): void {
    const [ref = '', list = ''] = line.split('\0')
    for (const capability of list.split(' ')) addCapability(capability)
    const [oid = '', name = ''] = ref.split(' ')
    if (oid.length === 64) capabilities.set('object-format', 'sha256')
    if (oid === 'shallow' || !OID.test(oid)) return
    if (wish.kind === 'ref' && name === wish.name) found = oid
    if (wish.kind === 'commit' && oid === wish.oid) isTip = true
  }
  function receive(packet: Packet): void {
    if (typeof packet === 'string') return
    const line = lineOf(packet)
    if (line.startsWith('ERR ')) throw failed(`${http.place}: the git server says: ${serverWords(packet.subarray(4))}`)
    if (version === undefined && line.startsWith('# service=')) return
    if (version === undefined && line === 'version 1') return
    if (version === undefined && line === 'version 2') version = 2
    else if (version === 2) addCapability(line)
    else {
      version = 0
      addRef(line)
    }
  }

  const reader = createPacketReader(receive)
  await http.advertisement((chunk) => {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw overLimit(`${http.place} has more refs than can be looked through (${MAX_BYTES} bytes)`)
    reader.push(chunk)
  })
  reader.end()
  if (version === undefined) throw failed(`${http.place} has no branch or tag: it is empty, or no git repository`)
  return { version, capabilities, found, isTip }
}
