interface Payload {
  readonly uid?: string
  readonly grantId?: string
  readonly scope?: string
  consumed?: number
}

/** Where the provider keeps sessions, grants and opaque tokens, also when its keys change. It looks at the end of what it finds itself. */
export function createOidcRecords(): (kind: string) => object {
  const records = new Map<string, Payload>()
  const sessions = new Map<string, string>()
  return (kind) => ({
    async upsert(id: string, payload: Payload) {
      // The scope of a registration does not limit what the client may ask for later.
      const { scope: _, ...withoutScope } = payload
      records.set(`${kind}:${id}`, kind === 'Client' ? withoutScope : payload)
      if (kind === 'Session' && payload.uid !== undefined) sessions.set(payload.uid, id)
    },
    find: async (id: string) => records.get(`${kind}:${id}`),
    findByUid: async (uid: string) => records.get(`${kind}:${sessions.get(uid)}`),
    async consume(id: string) {
      const payload = records.get(`${kind}:${id}`)
      if (payload !== undefined) payload.consumed = Math.floor(Date.now() / 1_000)
    },
    destroy: async (id: string) => void records.delete(`${kind}:${id}`),
    async revokeByGrantId(grantId: string) {
      for (const [key, payload] of records) if (payload.grantId === grantId) records.delete(key)
    },
  })
}
