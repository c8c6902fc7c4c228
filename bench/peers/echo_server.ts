import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";

/** `ScoreService/Score` that reads each message and answers with as many bytes as the first argument says, without looking at either. */
const response = Buffer.alloc(Number(process.argv[2]));
const identity = (message: Buffer) => message;

const server = new Server({ "grpc.max_receive_message_length": -1 });
server.addService(
  {
    Score: {
      path: "/skynet.scoring.v1.ScoreService/Score",
      requestStream: true,
      responseStream: true,
      requestSerialize: identity,
      requestDeserialize: identity,
      responseSerialize: identity,
      responseDeserialize: identity,
    },
  },
  {
    Score: (call: ServerDuplexStream<Buffer, Buffer>) => {
      call.on("data", () => call.write(response));
      call.on("end", () => call.end());
    },
  },
);
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  console.log(JSON.stringify({ addresses: [`127.0.0.1:${port}`] }));
});
process.on("SIGTERM", () => server.forceShutdown());
