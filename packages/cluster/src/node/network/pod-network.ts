/** Where a pod's processes live on this machine. */
export interface PodPlace {
  /** The pod's own address; `127.0.0.1` for every pod in mode `single`. */
  readonly address: string
  /** What `status.hostIP` says. */
  readonly hostAddress: string
  /** For the environment of every container: the bind guard and, for our own programs, the resolver of cluster names. */
  readonly env: Readonly<Record<string, string>>
}

export interface PodNetwork {
  /** The same place for the same uid until `removePod`. Rejects when no address is left. */
  addPod(uid: string, options?: AddPodOptions): Promise<PodPlace>
  removePod(uid: string): void
  /**
   * Sockets of a process group, and of all that its processes started, which listen where they must not, e.g. `0.0.0.0:3001`.
   * Empty where the system does not tell (no /proc and no lsof).
   */
  unsafeBinds(groupId: number, address: string): Promise<readonly string[]>
}

export interface AddPodOptions {
  /** Whose short names (`web` instead of `web.team`) the pod means. */
  readonly namespace?: string
}
