# An AMQP 0-9-1 client on Bunny. Ends by itself, or after LIFETIME seconds.
require "bunny"
require "optparse"
require "timeout"

LIFETIME = 25
MADE = Time.at(1_700_000_000) # fixed: two recordings differ as little as possible

given = {}
OptionParser.new do |options|
  options.on("--connect ADDRESS") { |address| given[:connect] = address }
end.parse!

# Topic exchange, confirms, prefetch; messages of every outcome, one returned; a transaction; get; no such queue.
Timeout.timeout(LIFETIME) do
  connection = Bunny.new(host: given[:connect], user: "shop", pass: "made-up-for-captures",
                         connection_name: "shop", automatically_recover: false, logfile: File::NULL)
  connection.start
  channel = connection.create_channel
  channel.confirm_select
  channel.prefetch(3)
  prices = channel.topic("prices", auto_delete: true)
  prices.on_return { |info, _, _| raise "not what was returned" unless info.routing_key == "nowhere" }
  clerk = channel.queue("clerk", exclusive: true, arguments: { "x-max-length" => 100 })
  clerk.bind(prices, routing_key: "tea.*")
  headers = { "count" => 3, "large" => 2**40, "fresh" => true, "weight" => 2.5, "picked" => MADE,
              "names" => ["sencha", { "grade" => 1 }], "note" => nil }
  6.times do |number|
    prices.publish("price #{number}", routing_key: "tea.green", headers: headers, persistent: true,
                                      mandatory: true, timestamp: MADE.to_i, message_id: "price-#{number}")
  end
  prices.publish("", routing_key: "nowhere", mandatory: true)
  raise "not confirmed" unless channel.wait_for_confirms

  taken = Queue.new
  consumer = clerk.subscribe(manual_ack: true, consumer_tag: "clerk") do |info, _, _|
    case info.delivery_tag % 3
    when 0 then channel.ack(info.delivery_tag, true)
    when 1 then channel.nack(info.delivery_tag)
    else channel.reject(info.delivery_tag)
    end
    taken << info.delivery_tag
  end
  6.times { taken.pop }
  consumer.cancel
  work = connection.create_channel
  work.tx_select
  work.default_exchange.publish("kept", routing_key: "clerk")
  work.tx_commit
  info, = clerk.pop(manual_ack: true)
  channel.ack(info.delivery_tag)
  clerk.pop
  work.close
  begin
    connection.create_channel.queue("missing", passive: true)
    raise "no error"
  rescue Bunny::NotFound
    channel.close
  end
  connection.close
end
