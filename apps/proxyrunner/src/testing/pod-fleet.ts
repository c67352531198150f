import { PassThrough } from 'node:stream'
import { type PodServer, type PodSession, startPodServer } from '@thv/kube/testing/pod-server'
import { fixtureServer, type ServerEnds } from '../backends/stdio/testing/pipe-runtime.ts'

/** Pods whose containers outlive those who attach to them, behind a server that speaks the protocol of attach. */
export class PodFleet implements AsyncDisposable {
  readonly names: readonly string[]
  /** The largest number of clients that were attached to one pod at a time. */
  mostAttached = 0
  readonly #server: PodServer
  readonly #attached = new Map<string, Set<PodSession>>()
  readonly #containers = new Map<string, ServerEnds>()

  static async start(count: number): Promise<PodFleet> {
    const waiting: { fleet?: PodFleet } = {}
    const server = await startPodServer({ onSession: (session) => waiting.fleet?.attach(session) })
    waiting.fleet = new PodFleet(server, count)
    return waiting.fleet
  }

  private constructor(server: PodServer, count: number) {
    this.#server = server
    this.names = Array.from({ length: count }, (_, at) => `demo-${at}`)
    for (const name of this.names) {
      this.#attached.set(name, new Set())
      this.#containers.set(name, this.#run(name))
    }
  }

  get url(): string {
    return this.#server.url
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }

  private attach(session: PodSession): void {
    const name = /\/pods\/([^/]+)\/attach$/.exec(session.url.pathname)?.[1] ?? ''
    const all = this.#attached.get(name)
    if (all === undefined) {
      session.socket.close()
      return
    }
    all.add(session)
    this.mostAttached = Math.max(this.mostAttached, all.size)
    session.socket.on('close', () => all.delete(session))
    session.socket.on('message', (data: Buffer) => {
      if (data[0] === 0) this.#containers.get(name)?.input.write(data.subarray(1))
    })
  }

  #run(name: string): ServerEnds {
    const ends: ServerEnds = {
      input: new PassThrough(),
      output: new PassThrough(),
      index: 0,
      write: (text) => {
        for (const session of this.#attached.get(name) ?? []) session.send(1, text)
      },
      exit: () => {},
      ended: new Promise(() => {}),
    }
    fixtureServer({ era: 'legacy' })(ends)
    return ends
  }
}
