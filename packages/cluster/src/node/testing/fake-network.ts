import type { PodNetwork } from '../network/pod-network.ts'

export interface FakeNetwork extends PodNetwork {
  /** Pods that have an address now. */
  readonly pods: ReadonlySet<string>
  /** Sockets that are reported as unsafe from now on. */
  unsafe: string[]
  /** Ports that every process seems to listen on from now on. */
  ports: number[]
}

/** Addresses without a claim: pods of a test that listen take port 0 or differ by address. */
export function fakeNetwork(): FakeNetwork {
  const pods = new Map<string, string>()
  const network: FakeNetwork = {
    unsafe: [],
    ports: [],
    get pods() {
      return new Set(pods.keys())
    },
    async addPod(uid) {
      const address = pods.get(uid) ?? `127.77.${1 + (pods.size >> 8)}.${1 + (pods.size & 0xff)}`
      pods.set(uid, address)
      return { address, hostAddress: '127.0.0.1', env: { THV_TEST_ADDRESS: address } }
    },
    removePod: (uid) => void pods.delete(uid),
    unsafeBinds: async () => network.unsafe,
    listeningPorts: async () => network.ports,
  }
  return network
}
