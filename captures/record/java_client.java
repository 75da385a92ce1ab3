import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** An AMQP 0-9-1 client on RabbitMQ's library for Java. Ends by itself, or fails. `--connect ADDRESS`. */
public class JavaClient {
    static final Date MADE = new Date(1_700_000_000_000L); // fixed: two recordings differ as little as possible

    public static void main(String[] given) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(given[1]);
        factory.setUsername("shop");
        factory.setPassword("made-up-for-captures");
        factory.setAutomaticRecoveryEnabled(false);
        Connection connection = factory.newConnection("shop");
        consume(connection.createChannel());
        withoutWaiting(connection.createChannel());
        transaction(connection.createChannel());
        Channel channel = connection.createChannel();
        channel.abort();
        connection.close();
    }

    /** Confirms, every type of header, prefetch, every way to settle, a return. */
    static void consume(Channel channel) throws Exception {
        channel.exchangeDeclare("prices", "topic", false, true, null);
        channel.queueDeclare("clerk", false, true, false, null);
        channel.queueBind("clerk", "prices", "tea.*");
        channel.basicQos(3);
        channel.confirmSelect();
        Map<String, Object> headers = new HashMap<>();
        headers.put("integer", 1);
        headers.put("long", 5L);
        headers.put("short", (short) 3);
        headers.put("octet", (byte) 4);
        headers.put("text", "tea");
        headers.put("nothing", null);
        headers.put("date", MADE);
        headers.put("octets", new byte[] {1, 2});
        headers.put("double", 2.5);
        headers.put("float", 1.5f);
        headers.put("truth", true);
        headers.put("list", Arrays.asList(1, "a"));
        headers.put("table", Map.of("grade", 1));
        headers.put("decimal", new BigDecimal("12.34"));
        AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder()
            .headers(headers).contentType("text/plain").deliveryMode(2).priority(3).timestamp(MADE).build();
        for (int number = 0; number < 6; number++) {
            channel.basicPublish("prices", "tea.green", true, properties, ("price " + number).getBytes());
        }
        channel.basicPublish("prices", "nowhere", true, null, new byte[0]);
        channel.waitForConfirmsOrDie(5000);
        BlockingQueue<Delivery> taken = new LinkedBlockingQueue<>();
        channel.basicConsume("clerk", false, "clerk", (tag, delivery) -> taken.add(delivery), tag -> { });
        for (int number = 0; number < 6; number++) {
            long tag = taken.poll(5, TimeUnit.SECONDS).getEnvelope().getDeliveryTag();
            switch (number % 3) {
                case 0: channel.basicAck(tag, false); break;
                case 1: channel.basicNack(tag, false, false); break;
                default: channel.basicReject(tag, false);
            }
        }
        channel.basicCancel("clerk");
        channel.close();
    }

    /** Requests that ask for no answer, and gets. */
    static void withoutWaiting(Channel channel) throws Exception {
        channel.exchangeDeclareNoWait("counter", "direct", false, true, false, null);
        channel.queueDeclareNoWait("till", false, true, false, null);
        channel.queueBindNoWait("till", "counter", "sale", null);
        channel.basicPublish("counter", "sale", null, "3.50".getBytes());
        channel.messageCount("till");
        GetResponse sale = channel.basicGet("till", false);
        channel.basicAck(sale.getEnvelope().getDeliveryTag(), false);
        channel.basicGet("till", false);
        channel.queueDeleteNoWait("till", false, false);
        channel.close();
    }

    static void transaction(Channel channel) throws Exception {
        channel.txSelect();
        channel.basicPublish("", "nowhere", null, "kept".getBytes());
        channel.txCommit();
        channel.basicPublish("", "nowhere", null, "dropped".getBytes());
        channel.txRollback();
        channel.basicRecover();
        channel.close();
    }
}
