import { ThvError } from '@thv/kernel/errors'
import { failed, serverWords } from './git-error.ts'
import { AGENT, type GitHttp } from './git-http.ts'
import { OID } from './git-objects.ts'
import type { PackFile } from './pack-file.ts'
import { createPacketReader, DELIM, FLUSH, lineOf, type Packet, packetLine } from './pkt-line.ts'
import { type Advertisement, readAdvertisement } from './ref-advertisement.ts'
import type { RefWish } from './ref-wish.ts'

export interface FetchWish {
  readonly wants: readonly string[]
  /** These objects and, of commits, their folders and files, without their history. */
  readonly depth1?: boolean
  /** No files, unless they are wanted themselves. Only if `canFilter`. */
  readonly withoutBlobs?: boolean
}

/** A repository on a server, by protocol version 2 where the server knows it, else by version 0 or 1. */
export interface GitRemote {
  readonly canFilter: boolean
  /** Hash of what the wish names: of a commit, or of the tag that leads to one. */
  find(wish: RefWish): Promise<string>
  /** Throws `RefusedByServer` for what the server does not give out. */
  fetch(wish: FetchWish, file: PackFile): Promise<void>
}

/** The server has said no in words. */
export class RefusedByServer extends ThvError {
  constructor(words: string) {
    super('source_failed', `the git server says: ${words}`)
  }
}

export async function connectRemote(http: GitHttp, wish: RefWish): Promise<GitRemote> {
  const advertisement = await readAdvertisement(http, wish)
  const { capabilities } = advertisement
  if ((capabilities.get('object-format') ?? 'sha1') !== 'sha1')
    throw failed(`${http.place} uses SHA-256 hashes, which are not supported: offer it as a SHA-1 repository`)
  return advertisement.version === 2 ? remoteOfVersion2(http, capabilities) : remoteOfVersion0(http, advertisement)
}

function remoteOfVersion2(http: GitHttp, capabilities: ReadonlyMap<string, string>): GitRemote {
  const common = [packetLine(`agent=${AGENT}`), ...(capabilities.has('object-format') ? [packetLine('object-format=sha1')] : [])]
  const command = (name: string, lines: readonly string[]) =>
    [packetLine(`command=${name}`), ...common, DELIM, ...lines.map(packetLine), FLUSH].join('')

  async function find(wish: RefWish): Promise<string> {
    if (wish.kind === 'commit') return wish.oid
    let found: string | undefined
    const reader = createPacketReader((packet) => {
      if (typeof packet === 'string') return
      refuseError(packet)
      const [oid = '', name] = lineOf(packet).split(' ')
      if (name === wish.name && OID.test(oid)) found = oid
    })
    await http.uploadPack(command('ls-refs', [`ref-prefix ${wish.name}`]), (chunk) => reader.push(chunk))
    reader.end()
    return found ?? missing(http, wish)
  }

  async function fetch({ wants, depth1, withoutBlobs }: FetchWish, file: PackFile): Promise<void> {
    const lines = [
      'no-progress',
      'ofs-delta',
      ...wants.map((oid) => `want ${oid}`),
      ...(depth1 ? ['deepen 1'] : []),
      ...(withoutBlobs ? ['filter blob:none'] : []),
      'done',
    ]
    let section = ''
    const receive = (packet: Packet) => {
      if (typeof packet === 'string') section = ''
      else if (section === 'packfile') readBand(packet, file)
      else {
        refuseError(packet)
        section ||= lineOf(packet)
      }
    }
    await receivePack(http, { body: command('fetch', lines), receive, file })
  }

  const canFilter = (capabilities.get('fetch') ?? '').split(' ').includes('filter')
  return { canFilter, find, fetch }
}

function remoteOfVersion0(http: GitHttp, { capabilities, found, isTip }: Advertisement): GitRemote {
  async function find(wish: RefWish): Promise<string> {
    if (wish.kind === 'ref') return found ?? missing(http, wish)
    if (isTip || capabilities.has('allow-reachable-sha1-in-want') || capabilities.has('allow-tip-sha1-in-want')) return wish.oid
    throw failed(notGivenOut(http.place, wish))
  }

  async function fetch({ wants, depth1 }: FetchWish, file: PackFile): Promise<void> {
    const band = ['side-band-64k', 'side-band'].find((name) => capabilities.has(name))
    if (band === undefined) throw failed(`${http.place} speaks a version of the protocol that is too old (no side-band)`)
    if (depth1 && !capabilities.has('shallow')) throw failed(`${http.place} cannot send a commit without its history`)
    const asked = [band, ...['ofs-delta', 'no-progress', 'agent'].filter((name) => capabilities.has(name))]
    const options = asked.map((name) => (name === 'agent' ? `agent=${AGENT}` : name)).join(' ')
    const lines = wants.map((oid, i) => packetLine(`want ${oid}${i === 0 ? ` ${options}` : ''}`))
    const body = [...lines, ...(depth1 ? [packetLine('deepen 1')] : []), FLUSH, packetLine('done')].join('')
    let inPack = false
    const receive = (packet: Packet) => {
      if (typeof packet === 'string') return
      if (!inPack) refuseError(packet)
      inPack ||= !/^(?:NAK|ACK |shallow |unshallow )/.test(packet.toString('latin1', 0, 10))
      if (inPack) readBand(packet, file)
    }
    await receivePack(http, { body, receive, file })
  }

  return { canFilter: false, find, fetch }
}

export function notGivenOut(place: string, wish: RefWish): string {
  return `${place} does not give out ${wish.label}: it is not there, or the server does not allow it (uploadpack.allowReachableSHA1InWant); name a branch or tag instead`
}

interface PackRequest {
  readonly body: string
  readonly receive: (packet: Packet) => void
  readonly file: PackFile
}

async function receivePack(http: GitHttp, { body, receive, file }: PackRequest): Promise<void> {
  const reader = createPacketReader(receive)
  await http.uploadPack(body, (chunk) => reader.push(chunk))
  reader.end()
  file.finish()
}

/** Side bands: 1 is the pack, 2 is talk, 3 is the end by an error. */
function readBand(packet: Buffer, file: PackFile): void {
  const content = packet.subarray(1)
  if (packet[0] === 1) file.append(content)
  else if (packet[0] === 3) throw new RefusedByServer(serverWords(content))
  else if (packet[0] !== 2) throw failed('the git server sent something else than a pack')
}

function refuseError(packet: Buffer): void {
  if (packet.toString('latin1', 0, 4) === 'ERR ') throw new RefusedByServer(serverWords(packet.subarray(4)))
}

function missing(http: GitHttp, wish: RefWish): never {
  const hint = wish.kind === 'ref' && wish.name === 'HEAD' ? ' with a commit: it is empty, or a branch must be named' : ''
  throw failed(`${http.place} has no ${wish.label}${hint}`)
}
