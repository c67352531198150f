import type { ServerResponse } from 'node:http'
import { type Backend, type SeenRequest, startBackend } from '@thv/http/testing/backend'
import { FLUSH, packetLine } from '../pkt-line.ts'
import { type BuiltCommit, buildCommit, buildPack } from './pack-builder.ts'

export type Answer = (response: ServerResponse, request: SeenRequest) => void | Promise<void>

export interface FakeAnswers {
  readonly advertisement?: Answer
  readonly refs?: Answer
  readonly fetch?: Answer
}

/** A server of protocol 2 without filters that answers as configured, and otherwise correctly with one commit. */
export async function startFakeGitServer(commit: BuiltCommit, answers: FakeAnswers = {}): Promise<Backend> {
  return await startBackend(async (request, response) => {
    if (request.method === 'GET') await (answers.advertisement ?? advertise())(response, request)
    else if (request.body.includes('command=ls-refs')) await (answers.refs ?? refs(commit.oid))(response, request)
    else await (answers.fetch ?? packAnswer(buildPack(commit.objects)))(response, request)
  })
}

export function advertise(fetchCapability = 'fetch=shallow'): Answer {
  const lines = ['version 2', 'agent=fake', 'ls-refs', fetchCapability, 'object-format=sha1'].map(packetLine).join('')
  return (response) => void advertisementHead(response).end(`${packetLine('# service=git-upload-pack')}${FLUSH}${lines}${FLUSH}`)
}

export function refs(oid: string): Answer {
  return (response) => void resultHead(response).end(`${packetLine(`${oid} HEAD`)}${FLUSH}`)
}

export function packAnswer(pack: Buffer): Answer {
  return (response) => {
    resultHead(response).write(packetLine('packfile'))
    for (let at = 0; at < pack.length; at += 60_000) response.write(band(1, pack.subarray(at, at + 60_000)))
    response.end(FLUSH)
  }
}

export function band(number: number, content: Buffer | string): Buffer {
  const data = Buffer.from(content)
  return Buffer.concat([Buffer.from((data.length + 5).toString(16).padStart(4, '0')), Buffer.from([number]), data])
}

export function advertisementHead(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' })
}

export function resultHead(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' })
}

/** Writes without end, as fast as it is read, until the client goes away. */
export function writeForever(response: ServerResponse, piece: () => Buffer): void {
  const more = () => {
    while (!response.destroyed) if (!response.write(piece())) return void response.once('drain', more)
  }
  more()
}

export { buildCommit }
